package main

import (
	"regexp"
	"strings"
)

// oneDash are flags that Terraform's and Nomad's users write with one dash.
var oneDash = []string{"-var", "-var-file"}

// valued are the global flags whose value is an argument of its own.
var valued = map[string]bool{
	"-n": true, "--namespace": true, "-H": true, "--host": true, "-o": true, "--output": true,
	"--format": true, "--progress": true,
}

var negative = regexp.MustCompile(`^-[0-9]+$`)

// rewrite makes arguments that cobra would misread readable: "-var x=1" becomes
// "--var x=1", and the -1 of "scale web -1" a flag. Nothing after "--" is
// touched.
func rewrite(args []string) []string {
	out := make([]string, 0, len(args))
	verb := verbIn(args)
	for i, arg := range args {
		if arg == "--" {
			return append(out, args[i:]...)
		}
		out = append(out, rewriteOne(verb, arg))
	}
	return out
}

func rewriteOne(verb, arg string) string {
	for _, f := range oneDash {
		if arg == f || strings.HasPrefix(arg, f+"=") {
			return "-" + arg
		}
	}
	if verb == "scale" && negative.MatchString(arg) {
		return "--by=" + arg
	}
	return arg
}

// verbIn is the first argument that is neither a global flag nor its value.
func verbIn(args []string) string {
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		if valued[args[i]] {
			i++
			continue
		}
		if !strings.HasPrefix(args[i], "-") {
			return args[i]
		}
	}
	return ""
}
