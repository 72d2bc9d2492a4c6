// Package simulate runs the turn engine, the event log and its subscribers
// through seeded histories: prompts, interrupts, replies, deletions, crashes,
// orderly stops, writes that fail or whose answer is lost, streams that come and
// go, and a wall clock that jumps. Store, sessions, permissions and the event bus
// are the real ones; the model and the tools are scripted and stop at gates,
// which the simulation opens one at a time. After each history the promises of
// design §7 and §9 are checked on what the store holds, what callers were told,
// what the tools did and what each client saw.
package simulate
