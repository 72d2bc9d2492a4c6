// Package crashtest kills the real program, again and again, and looks after each
// restart whether the promises of design §9 hold: what was acknowledged is there,
// no session is stuck, no effect happened twice, no file is half written, and no
// child of a dead server lives. It is tests alone; `make test` runs 200 kills,
// `make soak` as many as there is time for.
//
// The program is built with the tag "failpoint", so that half of the kills come
// right before or after a commit, at a place that the seed chooses; the others come
// at any moment. A failure prints its seed.
package crashtest
