//go:build !race

package event_test

const memoryFactor = 1
