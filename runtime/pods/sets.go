package pods

import (
	"cmp"
	"context"
	"slices"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

var _ runtime.Sets = (*Engine)(nil)

// Sets implements runtime.Sets.
func (e *Engine) Sets(context.Context) ([]jobspecs.Key, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if err := e.reachable(); err != nil {
		return nil, err
	}
	seen := map[jobspecs.Key]bool{}
	var out []jobspecs.Key
	for _, p := range e.pods {
		if key := p.seen.Load().Set; !seen[key] {
			seen[key] = true
			out = append(out, key)
		}
	}
	slices.SortFunc(out, func(a, b jobspecs.Key) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}
