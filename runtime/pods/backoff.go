package pods

import (
	"strconv"
	"time"

	"github.com/stsd/stsd/jobspecs"
)

// labelStreak counts, on each fresh container, the restarts of the crash loop
// that it belongs to: the exponent of the back-off. LabelRestarts goes on
// growing when a loop is over; this one begins again.
const labelStreak = "stsd.backoff"

// defaultRestart stands in for what a spec leaves zero, so that no spec makes a
// busy loop.
var defaultRestart = jobspecs.Restart{Initial: time.Second, Max: time.Minute, Reset: 5 * time.Minute}

// restartDelay is how long an ended container waits for its successor, counted
// from its end. The streak is the number of restarts made in this crash loop.
func restartDelay(r jobspecs.Restart, streak int) time.Duration {
	if streak == 0 {
		return r.First
	}
	return doubled(or(r.Initial, defaultRestart.Initial), or(r.Max, defaultRestart.Max), streak-1)
}

// streakOf is how many restarts the crash loop counts that ended with c.
func streakOf(c *Container, r jobspecs.Restart) int {
	ran := c.FinishedAt.Sub(c.StartedAt)
	if !c.StartedAt.IsZero() && ran >= or(r.Reset, defaultRestart.Reset) {
		return 0
	}
	return number(c.Labels[labelStreak])
}

// retryDelay is how long a failed step waits, after that many failures in a row.
func retryDelay(v Verb, tries int) time.Duration {
	if v == Pull {
		return doubled(10*time.Second, 5*time.Minute, tries-1)
	}
	return doubled(time.Second, 30*time.Second, tries-1)
}

// doubled is first·2ⁿ, at most top.
func doubled(first, top time.Duration, n int) time.Duration {
	d := first
	for ; n > 0 && d < top; n-- {
		d *= 2
	}
	return min(d, top)
}

// or is v, or what stands in for it where it is zero.
func or[T comparable](v, instead T) T {
	var zero T
	if v != zero {
		return v
	}
	return instead
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}
