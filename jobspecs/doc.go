// Package jobspecs is the vocabulary of stsd: sets, members, revisions and what
// is told about them. It holds values, their names and their defaults; it reads
// no files, speaks to no engine and imports nothing but the standard library.
//
// The words, each with one meaning:
//
//	set       a StatefulSet, "default/web"
//	ordinal   the number of a member, counted from start_ordinal
//	member    "web-0", in code a Pod
//	claim     the name of a volume block, "data"
//	volume    one claim of one ordinal, "data-web-0"
//	template  everything that makes a pod; a change of it is a new revision
//	revision  a stored template, numbered and hashed
package jobspecs
