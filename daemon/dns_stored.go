package daemon

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/stsd/stsd/dns"
	"github.com/stsd/stsd/jobspecs"
)

// namesFile is where the names are kept over a restart, beside the store.
const namesFile = "dns-snapshot.json"

func (n *names) path() string { return filepath.Join(n.d.cfg.DataDir, namesFile) }

// recall publishes what was answered last, before anything else is read: members
// go on while the daemon is away, and so do their look-ups. What it lacks is not
// denied until it has been seen. A file that is lost or broken costs nothing but
// this head start.
func (n *names) recall() {
	z, err := dns.Load(n.path())
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			n.d.log.Warn("stored names are not used", "error", err)
		}
		return
	}
	n.mu.Lock()
	for _, s := range z.Sets {
		key := jobspecs.Key{Namespace: s.Namespace, Name: s.Name}
		if _, told := n.sets[key]; !told {
			n.sets[key] = s
		}
	}
	n.recallNetworks(z.Networks)
	n.serial = max(n.serial, z.Serial)
	n.ready = true
	n.mu.Unlock()
	n.publish()
}

// recallNetworks takes those of namespaces and those that members joined. The
// caller holds mu.
func (n *names) recallNetworks(stored []dns.Network) {
	for _, s := range stored {
		f := Network{Namespace: s.Namespace, Subnet: s.Subnet, More: s.More, Gateway: s.Gateway, Internal: s.Internal, Others: s.Others}
		_, known := n.nets[s.Namespace]
		if !known && s.Gateway == gatewayOf(s.Subnet) { // a namespace's own comes first
			n.nets[s.Namespace] = s.Subnet
		}
		if n.nets[s.Namespace] == s.Subnet {
			f.Name = jobspecs.NetworkName(s.Namespace)
		}
		if !n.netsKnown && n.d.parts.Networks != nil {
			n.found = append(n.found, f)
		}
	}
}

// save keeps the names for the next start. What goes wrong is said once.
func (n *names) save() {
	n.mu.Lock()
	known := n.ready && n.loaded
	z := n.zone()
	n.mu.Unlock()
	if !known {
		return
	}
	said := ""
	if err := dns.Save(n.path(), z); err != nil {
		said = err.Error()
		if said != n.saveError {
			n.d.log.Warn("names are not kept over a restart", "error", err)
		}
	}
	n.saveError = said
}

// load adds what the store knows and drops what it does not: sets that are
// answered from what was stored are not seen yet, and are not denied.
func (n *names) load() error {
	keys, err := n.d.store.Keys()
	if err != nil {
		return err
	}
	stored := map[jobspecs.Key]bool{}
	for _, key := range keys {
		stored[key] = true
		if err := n.remember(key); err != nil {
			return err
		}
	}
	n.mu.Lock()
	defer n.publish()
	defer n.mu.Unlock()
	if n.nets, err = n.d.store.Subnets(); err != nil { // whatever is ready was stored before
		return err
	}
	for key, s := range n.sets {
		if s.Stale && !stored[key] {
			delete(n.sets, key)
		}
	}
	n.ready, n.loaded = true, true
	return nil
}

// remember takes a set's names from the store, unless they are known better.
func (n *names) remember(key jobspecs.Key) error {
	n.mu.Lock()
	_, known := n.sets[key]
	n.mu.Unlock()
	if known {
		return nil
	}
	s, err := n.d.remembered(key)
	if err != nil {
		return err
	}
	s.Stale = true
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, told := n.sets[key]; !told {
		n.sets[key] = s
	}
	return nil
}
