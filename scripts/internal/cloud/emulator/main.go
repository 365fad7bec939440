// Command emulator serves EventBridge, SQS, Secrets Manager and S3 on a listener that it
// inherits as file 3, until its standard input is closed. Only package cloud starts it; see there.
package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"time"

	"github.com/sivchari/kumo"
)

const inheritedListener = 3

// readHeaderMax bounds how long a client may take to send its headers.
const readHeaderMax = 10 * time.Second

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "emulator:", err)
		os.Exit(1)
	}
}

// run forwards the inherited listener to the emulator, which only offers to choose a
// port by itself.
func run() error {
	listener, err := net.FileListener(os.NewFile(inheritedListener, "listener"))
	if err != nil {
		return fmt.Errorf("inherited listener: %w", err)
	}
	emulator := kumo.NewServer()
	defer emulator.Close()
	target, err := url.Parse(emulator.URL)
	if err != nil {
		return err
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ErrorHandler = func(w http.ResponseWriter, r *http.Request, err error) {
		if r.Context().Err() != nil {
			return // the client has left, as every long poll does at the end of a run
		}
		fmt.Fprintln(os.Stderr, "emulator:", err)
		w.WriteHeader(http.StatusBadGateway)
	}
	server := &http.Server{Handler: proxy, ReadHeaderTimeout: readHeaderMax}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	// The parent holds the other end of the standard input. It ends with the parent,
	// however that ends.
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	if err := server.Close(); err != nil {
		return err
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
