package main

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stsd/stsd/jobspecs"
)

func TestRewrite(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"apply web.hcl -var a=1":         "apply web.hcl --var a=1",
		"apply web.hcl -var=a=1":         "apply web.hcl --var=a=1",
		"apply -var-file f -var a=1":     "apply --var-file f --var a=1",
		"apply --var a=1 -variable":      "apply --var a=1 -variable",
		"exec web-0 -- tool -var a=1":    "exec web-0 -- tool -var a=1",
		"scale web -1":                   "scale web --by=-1",
		"-n prod scale web -12 --detach": "-n prod scale web --by=-12 --detach",
		"logs scale --tail -1":           "logs scale --tail -1",
		"scale web +1":                   "scale web +1",
		"-n scale ls -1":                 "-n scale ls -1",
		"exec web-0 -- scale -1":         "exec web-0 -- scale -1",
	} {
		if got := strings.Join(rewrite(strings.Fields(in)), " "); got != want {
			t.Errorf("rewrite(%s) = %s, want %s", in, got, want)
		}
	}
}

func TestParseTarget(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]target{
		"redis":              {name: "redis"},
		"prod/redis":         {namespace: "prod", name: "redis"},
		"redis-1":            {name: "redis-1", set: "redis", ordinals: []span{{1, 1}}},
		"prod/redis-1":       {namespace: "prod", name: "redis-1", set: "redis", ordinals: []span{{1, 1}}},
		"redis-01":           {name: "redis-01"},
		"redis-0,2":          {name: "redis-0,2", set: "redis", ordinals: []span{{0, 0}, {2, 2}}, listed: true},
		"my-redis-10,12,3":   {name: "my-redis-10,12,3", set: "my-redis", ordinals: []span{{10, 10}, {12, 12}, {3, 3}}, listed: true},
		"redis-[0-2]":        {name: "redis-[0-2]", set: "redis", ordinals: []span{{0, 2}}, listed: true},
		"prod/redis-[0-2,7]": {namespace: "prod", name: "redis-[0-2,7]", set: "redis", ordinals: []span{{0, 2}, {7, 7}}, listed: true},
	} {
		got, err := parseTarget(in)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("parseTarget(%s) = %+v, %v, want %+v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "/", "a/b/c", "Redis", "redis-[2-0]", "redis-[", "redis-[]", "redis-[a]", "redis-[0-2", "redis,1", "redis-0,", "redis-0,x", "-[0-1]", "prod/", "../x", "redis-[0-99999999999]"} {
		if got, err := parseTarget(in); err == nil {
			t.Errorf("parseTarget(%q) = %+v, want an error", in, got)
		}
	}
}

func TestATargetPicksItsMembers(t *testing.T) {
	t.Parallel()
	var list []jobspecs.Member
	for i := range 4 {
		list = append(list, jobspecs.Member{Set: "web", Ordinal: i, Name: jobspecs.MemberName("web", i)})
	}
	list = append(list, jobspecs.Member{Set: "web-1x", Name: "web-1x-0"})
	for in, want := range map[string]string{
		"web": "web-0 web-1 web-2 web-3", "web-2": "web-2", "web-[1-2]": "web-1 web-2", "web-3,0": "web-0 web-3", "web-9": "", "web-1x": "web-1x-0",
	} {
		tg, err := parseTarget(in)
		if err != nil {
			t.Fatal(err)
		}
		picked, _ := pick(tg, list)
		var got []string
		for _, m := range picked {
			got = append(got, m.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s picks %v, want %s", in, got, want)
		}
	}
}
