package runtime

import "time"

// Clock tells the time, with its monotonic part as time.Now does: the clock of a host
// may be set, and what is measured by one process must not change by it. nil is
// time.Now.
type Clock func() time.Time

// Now is what the clock shows.
func (c Clock) Now() time.Time {
	if c == nil {
		return time.Now()
	}
	return c()
}
