// Package pods is the pod agent: what a kubelet does, for the containers of one
// host. It meets runtime.Engine on top of Host, a small container-level
// interface.
//
// Every pod has one goroutine, and every turn of it has the same shape:
//
//	look     what is known of the pod, as a value: PodWorld
//	decide   Next, pure: at most one step, checks that are due, when to wake up
//	act      the step, beside it the checks; what came of them goes into PodWorld
//
// What calls, events and results of steps change in PodWorld stands in world.go;
// what follows from it stands in next.go, and nowhere else.
package pods
