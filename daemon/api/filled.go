package api

import (
	"reflect"
	"time"
)

// filled is a copy of v in which every list is a list: a script that loops over
// `.ports[]` must not meet null. What v holds is left as it is, since others
// read it too.
func filled(v any) any {
	if v == nil {
		return nil
	}
	return fill(reflect.ValueOf(v)).Interface()
}

var timeType = reflect.TypeFor[time.Time]()

func fill(v reflect.Value) reflect.Value {
	switch {
	case v.Type() == timeType:
		return v
	case v.Kind() == reflect.Struct:
		return fillStruct(v)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
		return fillSlice(v)
	case v.Kind() == reflect.Pointer && !v.IsNil():
		p := reflect.New(v.Type().Elem())
		p.Elem().Set(fill(v.Elem()))
		return p
	}
	return v
}

func fillStruct(v reflect.Value) reflect.Value {
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	for i := range v.NumField() {
		if v.Type().Field(i).IsExported() {
			c.Field(i).Set(fill(v.Field(i)))
		}
	}
	return c
}

func fillSlice(v reflect.Value) reflect.Value {
	c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
	for i := range v.Len() {
		c.Index(i).Set(fill(v.Index(i)))
	}
	return c
}
