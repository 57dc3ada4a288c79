package runtime

import "slices"

// Equal tells whether two pods show the same, to the moment.
func (p *Pod) Equal(o *Pod) bool {
	return p.Set == o.Set && p.Name == o.Name && p.Ordinal == o.Ordinal && p.Revision == o.Revision && p.Service == o.Service &&
		p.Phase == o.Phase && p.Reason == o.Reason && p.Message == o.Message && p.Tries == o.Tries && p.Since == o.Since && p.NextTry == o.NextTry &&
		p.Ready == o.Ready && p.ReadySince == o.ReadySince && p.ReadyKnown == o.ReadyKnown && p.StartedAt == o.StartedAt && p.CreatedAt == o.CreatedAt &&
		p.Managed == o.Managed && p.Rendering == o.Rendering && p.Started == o.Started && p.Steady == o.Steady &&
		p.Address == o.Address && p.Address6 == o.Address6 && p.Restarts == o.Restarts && p.Image == o.Image && p.ImageID == o.ImageID && p.Role == o.Role &&
		slices.EqualFunc(p.Joined, o.Joined, equalEndpoints) && slices.Equal(p.Detached, o.Detached) && slices.Equal(p.Published, o.Published) &&
		slices.EqualFunc(p.Containers, o.Containers, equalContainers) && slices.Equal(p.Notes, o.Notes)
}

func equalEndpoints(a, b Endpoint) bool {
	return a.Network == b.Network && slices.Equal(a.Addresses, b.Addresses)
}

func equalContainers(a, b Container) bool {
	if (a.ExitCode == nil) != (b.ExitCode == nil) || a.ExitCode != nil && *a.ExitCode != *b.ExitCode {
		return false
	}
	a.ExitCode, b.ExitCode = nil, nil
	return a == b
}
