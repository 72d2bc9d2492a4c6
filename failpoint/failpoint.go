// Package failpoint marks the moments at which a crash must do no harm: one call
// at each commit point of a turn, before and after the write. In an ordinary
// build Hit does nothing and costs nothing; a build with the tag "failpoint" lets
// a test kill the process at a chosen moment.
package failpoint

// Point is a moment that has a name.
type Point string

// The moments around the commit points of design §9. Each is hit as
// "<point>.before" and "<point>.after" its write.
const (
	Admit    Point = "admit"    // C0 and, on an idle session, C1
	Join     Point = "join"     // C1 at a step boundary
	Step     Point = "step"     // C2
	Part     Point = "part"     // C3, a part begins
	Save     Point = "save"     // C3, a partial text is kept
	Answer   Point = "answer"   // C4
	Ask      Point = "ask"      // the requests of an answer are stored
	Call     Point = "call"     // C5
	Result   Point = "result"   // C6
	End      Point = "end"      // C7
	Recover  Point = "recover"  // the settling of one turn after a crash
	Compact  Point = "compact"  // a summary takes the place of a conversation
	Delegate Point = "delegate" // a child session is made for a call
)

// Points lists all of them.
func Points() []Point {
	return []Point{Admit, Join, Step, Part, Save, Answer, Ask, Call, Result, End, Recover, Compact, Delegate}
}
