package runtime

import (
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/stsd/stsd/jobspecs"
)

// Pods that differ in one field, or in one of what they list, are not equal.
func TestPodsAreEqualInEveryField(t *testing.T) {
	whole := func() *Pod {
		code := 3
		return &Pod{
			Joined: []Endpoint{{Network: "n", Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")}}}, Detached: []string{"other"},
			Published: []jobspecs.Port{{Name: "http"}}, Containers: []Container{{Name: "main", ExitCode: &code}}, Notes: []Note{{N: 1}},
		}
	}
	if !whole().Equal(whole()) {
		t.Fatal("a pod is not equal to one that shows the same")
	}
	tried := 0
	var walk func(p *Pod, path string, get func(p *Pod) reflect.Value)
	walk = func(p *Pod, path string, get func(p *Pod) reflect.Value) {
		at := get(p)
		if at.Kind() == reflect.Struct && at.NumField() > 0 && at.Type().Field(0).IsExported() {
			for i := range at.NumField() {
				walk(whole(), path+"."+at.Type().Field(i).Name, func(p *Pod) reflect.Value { return get(p).Field(i) })
			}
			return
		}
		if at.Kind() == reflect.Slice {
			walk(whole(), path+"[0]", func(p *Pod) reflect.Value { return get(p).Index(0) })
		}
		change(at)
		if tried++; p.Equal(whole()) {
			t.Errorf("pods that differ in %s are equal", path)
		}
	}
	walk(whole(), "Pod", func(p *Pod) reflect.Value { return reflect.ValueOf(p).Elem() })
	if fields := reflect.TypeFor[Pod]().NumField(); tried < fields {
		t.Errorf("%d differences were tried, and a pod has %d fields", tried, fields)
	}
}

// change gives a field another value; a list one more.
func change(v reflect.Value) {
	switch x := v.Addr().Interface().(type) {
	case *time.Time:
		*x = x.Add(time.Second)
		return
	case *netip.Addr:
		*x = netip.MustParseAddr("10.9.9.9")
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Int:
		v.SetInt(v.Int() + 1)
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Slice:
		v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
	case reflect.Pointer:
		v.SetZero()
	default:
		panic("a field of kind " + v.Kind().String() + ": say how it differs, and compare it in Equal")
	}
}
