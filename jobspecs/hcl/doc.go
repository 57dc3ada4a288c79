// Package hcl reads the language of stsd: HCL text into sets and templates, a
// template into one member's PodSpec. It reads no disk of its own: what a spec
// needs beside its source comes in as Inputs or through the functions of Options.
//
// The way of one spec through this package:
//
//	source ─ guard.go     size, text, depth, shell's ${…}
//	       ─ parse.go     files of one scope, variables, locals, statefulset blocks
//	       ─ decode.go    a block by its schema (schema.go, kind.go) into normal form
//	       ─ check.go     the template rendered for some members: clashes, overlaps
//	       → jobspecs.Spec
//	template + set + Env ─ render.go → jobspecs.PodSpec
//
// What evaluating may cost in time and memory is bounded by a meter (meter.go,
// costs.go): loops, functions and names of long values pay for what they do.
//
// The normal form (normal.go) is JSON of what was written. An attribute that
// depends on self or set is {"$expr": "…"}, printed from its syntax tree
// (print.go) with locals put in; the variables and files such expressions read
// stand beside them under "var" and "read", so that rendering needs nothing else.
package hcl
