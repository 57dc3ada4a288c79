package hostdns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"time"
)

// FileState is a file that was written, as it is now.
type FileState struct {
	Path    string `json:"path"`
	State   State  `json:"state"`
	Message string `json:"message,omitempty"`
}

// States are those of all files of an installation.
func States(h Host, r *Receipt) []FileState {
	out := []FileState{}
	for _, k := range r.Files {
		s, err := h.state(k)
		f := FileState{Path: k.Path, State: s}
		if err != nil {
			f.Message = err.Error()
		}
		out = append(out, f)
	}
	return out
}

// askTime is how long a question may take.
const askTime = 2 * time.Second

// Ask asks a server whether it is stsd's: the version of the Kubernetes DNS
// schema is a name that any has.
func Ask(ctx context.Context, server netip.AddrPort, domain string) error {
	return ask(ctx, &net.Resolver{
		PreferGo: true,
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, server.String())
		},
	}, domain)
}

// AskMachine asks the resolver that programs of this machine use. macOS asks the
// servers of a zone for addresses only.
func AskMachine(ctx context.Context, domain string) error {
	if runtime.GOOS != "darwin" {
		return ask(ctx, net.DefaultResolver, domain)
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	_, err := net.DefaultResolver.LookupHost(ctx, "ns.dns."+domain+".")
	return err
}

func ask(ctx context.Context, r *net.Resolver, domain string) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	name := "dns-version." + domain
	texts, err := r.LookupTXT(ctx, name+".") // absolute: no search list
	var failed *net.DNSError
	switch {
	case errors.As(err, &failed) && failed.IsTimeout:
		return fmt.Errorf("%s: no answer", name)
	case errors.As(err, &failed):
		return fmt.Errorf("%s: %s", name, failed.Err)
	case err != nil:
		return err
	case len(texts) == 0:
		return fmt.Errorf("%s: an empty answer", name)
	}
	return nil
}
