package jobspecs

import "fmt"

// Clash says why two sets of one namespace cannot live side by side, or nil: one
// is named like a member of the other, or a volume of both would have the same
// name. A set does not clash with itself.
func Clash(a, b *Set) error {
	if a.Namespace != b.Namespace || a.Name == b.Name {
		return nil
	}
	if namedLikeMember(a.Name, b.Name) {
		return fmt.Errorf("%s is named like a member of %s", a.Key(), b.Key())
	}
	if namedLikeMember(b.Name, a.Name) {
		return fmt.Errorf("%s would have a member named like %s", a.Key(), b.Key())
	}
	if v := CollidingVolumes(a.Name, claimNames(a), b.Name, claimNames(b)); v != "" {
		return fmt.Errorf("%s and %s would both use volumes named %s-ORDINAL", a.Key(), b.Key(), v)
	}
	return nil
}

func namedLikeMember(name, set string) bool {
	of, _, ok := ParseMember(name)
	return ok && of == set
}

func claimNames(s *Set) []string {
	names := make([]string, len(s.Claims))
	for i, c := range s.Claims {
		names[i] = c.Name
	}
	return names
}
