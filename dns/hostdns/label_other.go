//go:build !linux

package hostdns

func keepLabel(name, old string) error { return nil }
