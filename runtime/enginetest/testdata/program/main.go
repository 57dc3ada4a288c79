// Command program is everything that the suite runs in containers.
package main

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

func main() {
	switch verb, args := os.Args[1], os.Args[2:]; verb {
	case "serve": // accepts connections on port 8080, until SIGTERM
		l, err := net.Listen("tcp", ":8080")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println("serving")
		go accept(l)
		end()
	case "wait":
		end()
	case "brief": // ends with 3 after a second
		go func() {
			time.Sleep(time.Second)
			os.Exit(3)
		}()
		end()
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		time.Sleep(time.Hour)
	case "hang":
		time.Sleep(time.Hour)
	case "exit": // CODE
		code, _ := strconv.Atoi(args[0])
		os.Exit(code)
	case "role":
		fmt.Println("primary")
	case "reason": // WANTED
		if os.Getenv("STSD_REASON") != args[0] {
			fmt.Printf("STSD_REASON is %q, not %q\n", os.Getenv("STSD_REASON"), args[0])
			os.Exit(1)
		}
	}
}

func accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err == nil {
			c.Close()
		}
	}
}

func end() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM)
	<-c
}
