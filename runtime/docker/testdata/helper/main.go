// Command helper is the one program of the tests' image.
package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	verb, args := os.Args[1], os.Args[2:]
	switch verb {
	case "serve": // PORT: http, until SIGTERM
		go serve(args[0])
		wait(syscall.SIGTERM)
	case "sleep": // ends with SIGTERM
		fmt.Println("sleeping")
		wait(syscall.SIGTERM)
	case "until": // SIGNAL: says which one came
		fmt.Println("waiting")
		fmt.Println(wait(syscall.SIGTERM, syscall.SIGUSR1))
	case "deaf": // ends by SIGKILL only
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("deaf")
		time.Sleep(time.Hour) // select {} alone is a deadlock to Go
	case "family": // a child and a grandchild that never end
		if n, _ := strconv.Atoi(args[0]); n > 0 {
			c := exec.Command("/helper", "family", strconv.Itoa(n-1))
			c.Stdout, c.SysProcAttr = os.Stdout, &syscall.SysProcAttr{Setsid: true}
			c.Start()
		}
		fmt.Println("family", args[0])
		time.Sleep(time.Hour) // select {} alone is a deadlock to Go
	case "say-once": // LINE…, with a ! in front: to stderr
		say(args)
	case "wants": // NAME=VALUE… in the environment
		for _, pair := range args {
			if !slices.Contains(os.Environ(), pair) {
				fmt.Println("no", pair)
				os.Exit(1)
			}
		}
	case "say": // as say-once, and "later" at SIGUSR1, until SIGTERM
		say(args)
		if wait(syscall.SIGUSR1, syscall.SIGTERM) == syscall.SIGUSR1 {
			fmt.Println("later")
			wait(syscall.SIGTERM)
		}
	case "daemon": // leaves a child that keeps stdout, as services do that go to the background
		c := exec.Command("/helper", "deaf")
		c.Stdout, c.Stderr, c.SysProcAttr = os.Stdout, os.Stderr, &syscall.SysProcAttr{Setsid: true}
		fmt.Println("in the background") // before the child says something
		check(c.Start())
	case "exit": // CODE, after words on stderr
		fmt.Fprintln(os.Stderr, "first line")
		fmt.Fprintln(os.Stderr, strings.Join(args[1:], " "))
		code, _ := strconv.Atoi(args[0])
		os.Exit(code)
	case "cat":
		for _, path := range args {
			b, err := os.ReadFile(path)
			check(err)
			os.Stdout.Write(b)
		}
	case "write": // PATH TEXT
		check(os.WriteFile(args[0], []byte(args[1]), 0o644))
	case "stat": // mode uid gid of each
		for _, path := range args {
			var st syscall.Stat_t
			check(syscall.Stat(path, &st))
			fmt.Printf("%s %o %d:%d\n", path, st.Mode&0o7777, st.Uid, st.Gid)
		}
	case "ls":
		for _, path := range args {
			list, err := os.ReadDir(path)
			check(err)
			for _, e := range list {
				fmt.Println(e.Name())
			}
		}
	case "mkdir": // PATH
		check(os.MkdirAll(args[0], 0o755))
	case "swap": // PATH TO: a link in the place of a folder
		check(os.Rename(args[0], args[0]+".old"))
		check(os.Symlink(args[1], args[0]))
	case "orphan": // a child that leaves one behind, which ends at once
		check(exec.Command("/helper", "leave").Run())
	case "leave":
		check(exec.Command("/helper", "id").Start())
	case "ps": // state and name of all processes but this one
		found, _ := filepath.Glob("/proc/[0-9]*/stat")
		for _, path := range found {
			if b, err := os.ReadFile(path); err == nil && !strings.HasPrefix(string(b), strconv.Itoa(os.Getpid())+" ") {
				f := strings.Fields(string(b))
				fmt.Println(f[0], f[1], f[2])
			}
		}
	case "id": // user, group, further groups
		groups, err := os.Getgroups()
		check(err)
		fmt.Println(os.Getuid(), os.Getgid(), groups)
	case "limit": // lines of /proc/self/status or limits with a word in them
		for _, path := range []string{"/proc/self/status", "/proc/self/limits"} {
			b, err := os.ReadFile(path)
			check(err)
			for line := range strings.Lines(string(b)) {
				if strings.Contains(line, args[0]) {
					fmt.Println(strings.Join(strings.Fields(line), " "))
				}
			}
		}
	case "size": // bytes that fit on each
		for _, path := range args {
			var st syscall.Statfs_t
			check(syscall.Statfs(path, &st))
			fmt.Println(path, int64(st.Blocks)*st.Bsize)
		}
	case "names": // hostname, domain name, and the name that hosts gives to it
		var u syscall.Utsname
		check(syscall.Uname(&u))
		fmt.Println(text(u.Nodename[:]), text(u.Domainname[:]), canonical(text(u.Nodename[:])))
	case "lookup":
		for _, name := range args {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			addrs, err := net.DefaultResolver.LookupHost(ctx, name)
			cancel()
			slices.Sort(addrs)
			fmt.Println(name, addrs, err != nil)
		}
	case "env":
		fmt.Println(strings.Join(os.Environ(), "\n"))
	case "args":
		fmt.Println(strings.Join(args, "|"))
		wait(syscall.SIGTERM)
	case "echo": // stdin to stdout, a line each
		for s := bufio.NewScanner(os.Stdin); s.Scan(); {
			fmt.Println("got", s.Text())
		}
		os.Exit(7)
	}
}

func say(lines []string) {
	for _, line := range lines {
		out := os.Stdout
		if l, ok := strings.CutPrefix(line, "!"); ok {
			out, line = os.Stderr, l
		}
		fmt.Fprintln(out, line)
	}
}

func serve(port string) {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, r.UserAgent()) })
	check(http.ListenAndServe(":"+port, nil))
}

func wait(signals ...os.Signal) os.Signal {
	c := make(chan os.Signal, 1)
	signal.Notify(c, signals...)
	return <-c
}

func text(b []int8) string {
	var s strings.Builder
	for _, c := range b {
		if c == 0 {
			break
		}
		s.WriteByte(byte(c))
	}
	return s.String()
}

// canonical is the first name of the host's line in /etc/hosts: what hostname -f says.
func canonical(host string) string {
	b, err := os.ReadFile("/etc/hosts")
	check(err)
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && slices.Contains(f[1:], host) {
			return f[1]
		}
	}
	return ""
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
