package daemon

// A lock is held by one at a time, over calls of the engine too. Who waits for it
// waits as for a channel, so that the clock of a bubble of testing/synctest, in which
// those calls take time, goes on.
type lock chan struct{}

func newLock() lock { return make(lock, 1) }

// Lock waits until nobody has it.
func (l lock) Lock() { l <- struct{}{} }

// Unlock gives it to who waits.
func (l lock) Unlock() { <-l }
