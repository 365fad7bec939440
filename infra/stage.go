package main

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"holdfast/shared/topology"
)

// stageName names one deployment of Holdfast.
type stageName string

const (
	stageDev     stageName = "dev"
	stageStaging stageName = "staging"
	stageProd    stageName = "prod"
)

// stage is what differs between deployments. All that is not here is the same
// everywhere, so that staging proves what prod will do.
type stage struct {
	Name stageName
	// RemovalPolicy decides whether data and logs outlive a deleted stack.
	RemovalPolicy awscdk.RemovalPolicy
	// DeletionProtection guards the table and the stack against a mistaken delete.
	DeletionProtection  bool
	PointInTimeRecovery bool
	LogRetention        awslogs.RetentionDays
	// ThrottleFactor scales the throttles of the routes, which are sized for prod.
	ThrottleFactor float64
	SweepPageItems int
	// ArchiveHoldsAfterDays is how many days an ended hold stays in the table, and
	// ArchiveReservationsAfterDays a reservation at rest.
	ArchiveHoldsAfterDays, ArchiveReservationsAfterDays int
	// AuditEvery is from the beginning of one audit of the table to that of the next, and
	// AuditRepair what an audit writes by itself.
	AuditEvery  time.Duration
	AuditRepair topology.AuditRepair
	// LagThreshold is the expiry lag above which the alarm goes off.
	LagThreshold  time.Duration
	OperatorGroup string
	// ListenerRequired says that a deployment must name somebody who hears the alarms.
	ListenerRequired bool
	// ExampleIssuer and ExampleAudience stand in for the token issuer's, so that a
	// template can be synthesised without an account. They are never deployed.
	ExampleIssuer, ExampleAudience string
}

// settings is one chosen stage and what only its owner knows.
type settings struct {
	stage
	JWTIssuer, JWTAudience string
	// AlarmEmail hears the alarms; empty means that its topics have no subscriber yet.
	AlarmEmail string
	// Example says that issuer and audience are the example ones.
	Example bool
}

// The context keys, given with -c key=value.
const (
	contextStage       = "stage"
	contextJWTIssuer   = "jwtIssuer"
	contextJWTAudience = "jwtAudience"
	contextAlarmEmail  = "alarmEmail"
)

const (
	// The domain is reserved and resolves to nothing (RFC 2606), so that a gateway
	// with this issuer accepts no token at all.
	exampleIssuer   = "https://issuer.example.invalid"
	exampleAudience = "holdfast-example"
	operatorGroup   = "operators"
	// lagThreshold is the published bound: a hold ends at most so long after it is due.
	lagThreshold = 120 * time.Second
	// financialDays keeps more than a year of books in the table, and financialDaysProd what
	// a buyer may dispute with the card's issuer, which is up to 540 days.
	financialDays, financialDaysProd = 400, 550
	// auditEvery finds drift before many customers do. Each audit costs half a read unit for
	// each 4 KB of the table: for 10 GB that is $0.16, and $120 a month. A stage with a larger
	// table makes it longer.
	auditEvery = auditPeriod
)

// stages returns every stage, in the order of promotion.
func stages() []stage {
	return []stage{
		{
			Name:           stageDev,
			RemovalPolicy:  awscdk.RemovalPolicy_DESTROY,
			LogRetention:   awslogs.RetentionDays_ONE_WEEK,
			ThrottleFactor: 0.1,
			SweepPageItems: 100,

			ArchiveHoldsAfterDays:        30,
			ArchiveReservationsAfterDays: financialDays,

			AuditEvery:  auditEvery,
			AuditRepair: topology.AuditRepairCertain,

			LagThreshold:    lagThreshold,
			OperatorGroup:   operatorGroup,
			ExampleIssuer:   exampleIssuer,
			ExampleAudience: exampleAudience,
		},
		{
			Name:                stageStaging,
			RemovalPolicy:       awscdk.RemovalPolicy_DESTROY,
			PointInTimeRecovery: true,
			LogRetention:        awslogs.RetentionDays_ONE_MONTH,
			ThrottleFactor:      0.5,
			SweepPageItems:      250,

			ArchiveHoldsAfterDays:        60,
			ArchiveReservationsAfterDays: financialDays,

			AuditEvery:  auditEvery,
			AuditRepair: topology.AuditRepairCertain,

			LagThreshold:    lagThreshold,
			OperatorGroup:   operatorGroup,
			ExampleIssuer:   exampleIssuer,
			ExampleAudience: exampleAudience,
		},
		{
			Name:                stageProd,
			RemovalPolicy:       awscdk.RemovalPolicy_RETAIN,
			DeletionProtection:  true,
			PointInTimeRecovery: true,
			LogRetention:        awslogs.RetentionDays_ONE_YEAR,
			ThrottleFactor:      1,
			SweepPageItems:      250,

			ArchiveHoldsAfterDays:        90,
			ArchiveReservationsAfterDays: financialDaysProd,

			AuditEvery: auditEvery,
			// Whatever an audit finds is a fault of ours, and a repair hides it. Where money is
			// taken a person looks first, and repairs with one command.
			AuditRepair: topology.AuditRepairOff,

			LagThreshold:     lagThreshold,
			OperatorGroup:    operatorGroup,
			ListenerRequired: true,
			ExampleIssuer:    exampleIssuer,
			ExampleAudience:  exampleAudience,
		},
	}
}

// stageNamed returns the stage of that name. The error names the valid ones.
func stageNamed(name string) (stage, error) {
	var valid []string
	for _, s := range stages() {
		if string(s.Name) == name {
			return s, nil
		}
		valid = append(valid, string(s.Name))
	}
	return stage{}, fmt.Errorf("context key %q is %q: want one of %s, as in -c %s=%s",
		contextStage, name, strings.Join(valid, ", "), contextStage, valid[0])
}

// readSettings reads the context keys. Issuer and audience may be left out together,
// and only while account is empty: a gateway that trusts the example issuer lets
// nobody in, which is better found here than by the first user.
func readSettings(node constructs.Node, account string) (settings, error) {
	text := func(key string) string {
		value, _ := node.TryGetContext(jsii.String(key)).(string)
		return strings.TrimSpace(value)
	}
	chosen, err := stageNamed(text(contextStage))
	if err != nil {
		return settings{}, err
	}
	s := settings{
		stage:       chosen,
		JWTIssuer:   text(contextJWTIssuer),
		JWTAudience: text(contextJWTAudience),
		AlarmEmail:  text(contextAlarmEmail),
	}
	if s.JWTIssuer == "" && s.JWTAudience == "" && account == "" {
		s.JWTIssuer, s.JWTAudience, s.Example = chosen.ExampleIssuer, chosen.ExampleAudience, true
		return s, nil
	}
	if s.JWTIssuer == "" || s.JWTAudience == "" {
		return settings{}, fmt.Errorf("stage %s: context keys %q and %q are both needed to deploy, as in -c %s=https://… -c %s=…",
			chosen.Name, contextJWTIssuer, contextJWTAudience, contextJWTIssuer, contextJWTAudience)
	}
	if issuer, err := url.Parse(s.JWTIssuer); err != nil || issuer.Scheme != "https" || issuer.Host == "" {
		return settings{}, fmt.Errorf("context key %q is %q: want an https URL", contextJWTIssuer, s.JWTIssuer)
	}
	if account != "" && s.JWTIssuer == chosen.ExampleIssuer {
		return settings{}, fmt.Errorf("context key %q is the example issuer, which signs no token", contextJWTIssuer)
	}
	if account != "" && chosen.ListenerRequired && s.AlarmEmail == "" {
		return settings{}, fmt.Errorf("stage %s: context key %q is missing: its alarms would reach nobody",
			chosen.Name, contextAlarmEmail)
	}
	return s, nil
}
