package localrun

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"holdfast/scripts/internal/gateway"
	"holdfast/shared/topology"
)

const (
	// host is the only address that the gateway listens on: it is plain HTTP.
	host = "127.0.0.1"
	// headerReadMax bounds how long a client may take to send its headers.
	headerReadMax = 10 * time.Second
	// idleMax bounds how long an unused connection is kept.
	idleMax = 2 * time.Minute
	// closeMax bounds the wait for requests that are being answered when Close comes.
	closeMax = 3 * time.Second
)

// listen takes the gateway's port before anything slow begins, so that a port in use is
// told at once. Who connects early waits until the gateway accepts.
func (s *System) listen(ctx context.Context) error {
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(s.options.Port)))
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("port %d is in use; choose another one with -port, or any free one with -port 0", s.options.Port)
	}
	if err != nil {
		return fmt.Errorf("listen for requests: %w", err)
	}
	s.listener = listener
	s.BaseURL = "http://" + listener.Addr().String()
	s.onClose(func() error {
		if err := listener.Close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil // the gateway has closed it
	})
	return nil
}

func (s *System) startGateway(context.Context) error {
	functions := make(map[topology.FunctionName]gateway.Invoke)
	for name, function := range s.functions {
		functions[name] = function.Invoke
	}
	handler, err := gateway.New(gateway.Config{
		Routes: topology.Routes(), Functions: functions,
		Authorizer: &gateway.Authorizer{
			Keys: s.issuer.PublicKeys(), Issuer: gateway.LocalIssuer, Audience: gateway.LocalAudience, Now: time.Now,
		},
		IntegrationTimeout: topology.IntegrationTimeout, Now: time.Now, Log: s.log, ClaimsAsSent: gateway.RenderClaims,
		Measured: s.ofGateway,
	})
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerReadMax, IdleTimeout: idleMax,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	go func() {
		if err := server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			s.fail(fmt.Errorf("the gateway has ended: %w", err))
		}
	}()
	s.onClose(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), closeMax)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			return server.Close()
		}
		return nil
	})
	s.tell("the HTTP API is running on %s", s.BaseURL)
	return nil
}
