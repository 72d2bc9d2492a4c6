package sqlgen

import "strings"

// blank gives sql with comments and the insides of string literals replaced by
// spaces, and those of quoted names too if names is set. Lengths and line breaks
// stay, so offsets mean the same in both.
func blank(sql string, names bool) string {
	out := []byte(sql)
	for i := 0; i < len(sql); {
		start, end := i, i+1
		switch rest := sql[i:]; {
		case strings.HasPrefix(rest, "--"):
			end = i + until(rest, "\n", 0)
		case strings.HasPrefix(rest, "/*"):
			end = i + until(rest, "*/", 2)
		case rest[0] == '\'':
			start, end = i+1, i+quoted(rest)
		case rest[0] == '"':
			end = i + quoted(rest)
			start = end
			if names {
				start = i + 1
			}
		default:
			start = end
		}
		wipe(out[start:end])
		i = max(end, i+1)
	}
	return string(out)
}

// until gives the index behind stop in s, skipping the first skip bytes, or the
// end of s; a line break is not part of the comment that it ends.
func until(s, stop string, skip int) int {
	at := strings.Index(s[skip:], stop)
	switch {
	case at < 0:
		return len(s)
	case stop == "\n":
		return skip + at
	default:
		return skip + at + len(stop)
	}
}

// quoted gives the length of the literal or name at the start of s. A doubled
// quote needs no care: it reads as two literals side by side.
func quoted(s string) int {
	if at := strings.IndexByte(s[1:], s[0]); at >= 0 {
		return at + 2
	}
	return len(s)
}

// wipe leaves closing quotes, which keep neighbouring words apart.
func wipe(b []byte) {
	for i, c := range b {
		if c != '\n' && c != '\'' && c != '"' {
			b[i] = ' '
		}
	}
}
