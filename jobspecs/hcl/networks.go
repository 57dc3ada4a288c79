package hcl

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/stsd/stsd/jobspecs"
)

var networkName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$`)

// engineNetworks are those of every engine, on which nothing has a name.
var engineNetworks = []string{"bridge", "host", "none", "default"}

func checkNetwork(s string) error {
	if !networkName.MatchString(s) {
		return fmt.Errorf("%q is no name of a network", s)
	}
	if slices.Contains(engineNetworks, s) {
		return fmt.Errorf("network %s cannot be joined: containers have no names there", s)
	}
	return nil
}

// joined holds the networks to join against each other and against the set's own.
func (d *decoder) joined(set *jobspecs.Set, doc document) {
	names := textsOf(doc["networks"])
	for i, name := range names {
		at := d.place(fmt.Sprintf("networks[%d]", i))
		switch {
		case name == jobspecs.NetworkName(set.Namespace):
			d.error(at, fmt.Sprintf("%s is the network of namespace %s: every member is on it", name, set.Namespace), "Leave it out.")
		case slices.Contains(names[:i], name):
			d.error(at, fmt.Sprintf("network %s stands here twice", name), "")
		}
	}
}

// sortNetworks makes the order in which they are written leave no trace.
func sortNetworks(template document) {
	list, _ := template["networks"].([]any)
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b any) int {
		s, _ := a.(string)
		t, _ := b.(string)
		return strings.Compare(s, t)
	})
	delete(template, "networks")
	if len(list) > 0 {
		template["networks"] = list
	}
}
