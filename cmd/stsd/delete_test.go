package main

import "testing"

func TestSetsOfAFileAreDeletedBackwardsOverStartAfter(t *testing.T) {
	t.Parallel()
	set := func(name, lines string) string {
		return "statefulset \"" + name + "\" {\n" + lines + "\ncontainer \"a\" {\nimage = \"x\"\n}\n}\n"
	}
	file := write(t, "all.hcl", set("web", `start_after = ["db", "cache"]`)+set("db", `start_after = ["etcd"]`)+set("etcd", "")+set("cache", ""))
	a := newApp(nil, nil, nil, nil)
	got, err := a.doomed(&deleteFlags{specFlags: specFlags{files: []string{file}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	names := ""
	for _, k := range got {
		names += " " + k.Name
	}
	if want := " web cache db etcd"; names != want {
		t.Errorf("order =%s, want%s", names, want)
	}
}
