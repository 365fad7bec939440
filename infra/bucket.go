package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/jsii-runtime-go"

	"holdfast/shared/topology"
)

const (
	// archiveHotDays is how long an object stays in the class in which reading is free. An
	// operator who restores something wants most often what has just left the table.
	archiveHotDays = 30
	// uploadDays ends what was begun in parts and never finished.
	uploadDays = 7
	// tlsMin is the oldest TLS that is spoken.
	tlsMin = 1.2
	// auditRunDays is how long the parts of an audit are kept: long enough to look into one
	// that went wrong over a weekend.
	auditRunDays = 4
	// auditReportDays keeps the reports of a quarter and of the one before it, in which
	// somebody asks since when a number is wrong.
	auditReportDays = 190
)

// newArchiveBucket makes the bucket for what has left the table. From the time-to-live of a
// record on it has the only copy, so it keeps every version of an object, and nobody's role
// may delete there.
func newArchiveBucket(stack awscdk.Stack, chosen stage) awss3.Bucket {
	props := guarded(chosen)
	props.Versioned = jsii.Bool(true)
	props.LifecycleRules = &[]*awss3.LifecycleRule{{
		AbortIncompleteMultipartUploadAfter: days(uploadDays),
		Transitions: &[]*awss3.Transition{{
			StorageClass: awss3.StorageClass_INFREQUENT_ACCESS(), TransitionAfter: days(archiveHotDays),
		}},
	}}
	return awss3.NewBucket(stack, jsii.String(constructID(string(topology.ResourceArchiveBucket))), props)
}

// newAuditBucket makes the bucket for what the parts of an audit saw, and for its reports. It
// is a bucket of its own, because all that is in it goes by itself after a time, and of the
// archive nothing may: one rule in the wrong bucket, or under the wrong prefix, would lose
// the only copy of the books. Nothing here is the only copy of anything, so it keeps no
// versions.
func newAuditBucket(stack awscdk.Stack, chosen stage) awss3.Bucket {
	props := guarded(chosen)
	props.LifecycleRules = &[]*awss3.LifecycleRule{
		{Prefix: jsii.String(topology.AuditRunPrefix), Expiration: days(auditRunDays)},
		{Prefix: jsii.String(topology.AuditReportPrefix), Expiration: days(auditReportDays)},
		{AbortIncompleteMultipartUploadAfter: days(uploadDays)},
	}
	return awss3.NewBucket(stack, jsii.String(constructID(string(topology.ResourceAuditBucket))), props)
}

// guarded is what all buckets have: no public access, no plain connection, no access list.
// They are encrypted with the key of S3, so that no role needs a permission on a key, and no
// lost key loses what is in them.
func guarded(chosen stage) *awss3.BucketProps {
	return &awss3.BucketProps{
		BlockPublicAccess: awss3.BlockPublicAccess_BLOCK_ALL(),
		Encryption:        awss3.BucketEncryption_S3_MANAGED,
		EnforceSSL:        jsii.Bool(true),
		MinimumTLSVersion: jsii.Number(tlsMin),
		ObjectOwnership:   awss3.ObjectOwnership_BUCKET_OWNER_ENFORCED,
		RemovalPolicy:     chosen.RemovalPolicy,
	}
}

func days(n float64) awscdk.Duration { return awscdk.Duration_Days(jsii.Number(n)) }
