package localrun

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/engine"
	"holdfast/shared/reconcile"
)

func (s *System) startEngine(ctx context.Context) error {
	if s.options.OwnEngine || os.Getenv(engine.EndpointVariable) == "" {
		// A first build takes minutes and belongs before a person's eyes. What the engine
		// prints later belongs into its log.
		if _, err := engine.Binary(ctx, s.options.Progress); err != nil {
			return err
		}
	}
	if s.options.Fresh {
		if err := s.folder.removeTable(); err != nil {
			return err
		}
	}
	var err error
	if s.engineLog, err = s.openLog("engine"); err != nil {
		return err
	}
	started, err := s.launchEngine(ctx, 0)
	if err != nil {
		return err
	}
	s.onClose(s.closeEngine)
	s.engineEndpoint = started.Endpoint()
	s.tell("the DynamoDB engine is running on %s", s.engineEndpoint)
	return nil
}

func (s *System) launchEngine(ctx context.Context, port int) (*engine.Engine, error) {
	started, err := engine.Start(ctx, engine.Options{
		DataFile: s.folder.file(engineFileName), Port: port, Log: s.engineLog, OwnProcess: s.options.OwnEngine,
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.engine = started
	s.mu.Unlock()
	go func() {
		<-started.Ended() // never for an engine of somebody else, which outlives this process
		s.mu.Lock()
		isWanted := s.engine == started
		s.mu.Unlock()
		if isWanted {
			s.fail(fmt.Errorf("the DynamoDB engine has ended; its log in %s may say why", s.LogFolder()))
		}
	}()
	return started, nil
}

// takeEngine returns the engine, which from now on may end.
func (s *System) takeEngine() *engine.Engine {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.engine
	s.engine = nil
	return taken
}

// closeEngine first removes a scratch table from an engine that lives on.
func (s *System) closeEngine() error {
	taken := s.takeEngine()
	if taken == nil {
		return nil
	}
	if taken.PID() != 0 || !s.folder.isScratch {
		return taken.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeMax)
	defer cancel()
	return errors.Join(s.deleteTable(ctx), taken.Close())
}

// KillEngine ends the engine in the middle of whatever it does. What it has acknowledged is
// kept. It needs Options.OwnEngine.
func (s *System) KillEngine() error {
	if !s.options.OwnEngine {
		return engine.ErrNotOwned
	}
	taken := s.takeEngine()
	if taken == nil {
		return errors.New("the engine does not run")
	}
	return taken.Kill()
}

// RestartEngine starts the killed engine again, with the same data and where everybody
// expects it.
func (s *System) RestartEngine(ctx context.Context) error {
	endpoint, err := url.Parse(s.engineEndpoint)
	if err != nil {
		return fmt.Errorf("restart the engine: %w", err)
	}
	port, err := strconv.Atoi(endpoint.Port())
	if err != nil {
		return fmt.Errorf("restart the engine: %w", err)
	}
	_, err = s.launchEngine(ctx, port)
	return err
}

func (s *System) openTable(ctx context.Context) error {
	if s.options.Fresh {
		if err := s.deleteTable(ctx); err != nil {
			return err
		}
	}
	if err := dynamo.CreateTable(ctx, s.Database(), s.Table); err != nil {
		if errors.Is(err, dynamo.ErrOtherSchema) {
			return fmt.Errorf("%w; start with -fresh to begin with an empty table", err)
		}
		return err
	}
	described, err := s.Database().DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(s.Table)})
	if err != nil {
		return fmt.Errorf("find the table's stream: %w", err)
	}
	s.streamARN = aws.ToString(described.Table.LatestStreamArn)
	return nil
}

func (s *System) deleteTable(ctx context.Context) error {
	_, err := s.Database().DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String(s.Table)})
	if missing := (*types.ResourceNotFoundException)(nil); err != nil && !errors.As(err, &missing) {
		return fmt.Errorf("delete the table %s: %w", s.Table, err)
	}
	return nil
}

// Database returns a client of the engine, for looking at the table from outside.
func (s *System) Database() *dynamodb.Client { return engine.Client(s.engineEndpoint) }

// Audit checks the whole table. The ledger must be at rest.
func (s *System) Audit(ctx context.Context) (reconcile.Report, error) {
	return reconcile.AuditAtRest(ctx, dynamo.NewScan(s.Database(), s.Table), time.Now())
}

// Unpublished counts the events of the table that are not marked as published.
func (s *System) Unpublished(ctx context.Context) (int, error) {
	pages := dynamodb.NewScanPaginator(s.Database(), &dynamodb.ScanInput{
		TableName: aws.String(s.Table), IndexName: aws.String(dynamo.IndexUnpublished), Select: types.SelectCount,
	})
	count := 0
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return 0, fmt.Errorf("count unpublished events: %w", err)
		}
		count += int(page.Count)
	}
	return count, nil
}
