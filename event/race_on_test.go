//go:build race

package event_test

// memoryFactor is how much more memory the race detector takes at most.
const memoryFactor = 8
