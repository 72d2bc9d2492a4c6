package llm

import (
	"math/rand/v2"
	"time"
)

// RetryPolicy says how long to wait after a failed attempt. It is pure: the
// caller counts and waits. Zero fields have defaults.
type RetryPolicy struct {
	// Attempts is how many requests are made at most; default 5.
	Attempts int
	// Base is the wait after the first attempt, doubled after each; default 2 s.
	Base time.Duration
	// Max bounds each wait; default 30 s.
	Max time.Duration
}

// jitter is the share that is added to a wait at random, so that sessions that
// failed together do not come back together. Below 1, waits never decrease.
const jitter = 0.25

// Next tells how long to wait before trying again after attempt (1, 2, …) ended
// with err. It reports false when there must be no further attempt: the error
// does not pass by itself, the attempts are used up, or the provider asks to
// wait longer than Max.
func (p RetryPolicy) Next(attempt int, err *Error) (time.Duration, bool) {
	if err == nil || !err.Retryable {
		return 0, false
	}
	return p.Wait(attempt, err.RetryAfter)
}

// Wait is Next for an error that is worth a retry. retryAfter is what the
// provider asked for, 0 for nothing.
func (p RetryPolicy) Wait(attempt int, retryAfter time.Duration) (time.Duration, bool) {
	p = p.withDefaults()
	if attempt < 1 || attempt >= p.Attempts || retryAfter > p.Max {
		return 0, false
	}
	if retryAfter > 0 {
		return retryAfter, true
	}
	wait := p.Base
	for range attempt - 1 {
		if wait >= p.Max {
			break
		}
		wait *= 2
	}
	wait += time.Duration(rand.Float64() * jitter * float64(wait))
	return min(wait, p.Max), true
}

func (p RetryPolicy) withDefaults() RetryPolicy {
	if p.Attempts == 0 {
		p.Attempts = 5
	}
	if p.Base == 0 {
		p.Base = 2 * time.Second
	}
	if p.Max == 0 {
		p.Max = maxWait
	}
	return p
}

// maxWait is the longest wait that a turn is worth.
const maxWait = 30 * time.Second

// Backoff is Wait of the default policy: 5 attempts, waits of about 2, 4, 8 and
// 16 s, a provider's own wish honoured up to 30 s.
func Backoff(attempt int, retryAfter time.Duration) (time.Duration, bool) {
	return RetryPolicy{}.Wait(attempt, retryAfter)
}
