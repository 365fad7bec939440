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
	// archiveUploadDays ends what was begun in parts and never finished.
	archiveUploadDays = 7
	// archiveTLSMin is the oldest TLS that is spoken.
	archiveTLSMin = 1.2
)

// newArchiveBucket makes the bucket for what has left the table. From the time-to-live of a
// record on it has the only copy, so it keeps every version of an object, and nobody's role
// may delete there.
//
// It is encrypted with the key of S3, so that no role needs a permission on a key, and no
// lost key loses the archive.
func newArchiveBucket(stack awscdk.Stack, chosen stage) awss3.Bucket {
	return awss3.NewBucket(stack, jsii.String(constructID(string(topology.ResourceArchiveBucket))), &awss3.BucketProps{
		BlockPublicAccess: awss3.BlockPublicAccess_BLOCK_ALL(),
		Encryption:        awss3.BucketEncryption_S3_MANAGED,
		EnforceSSL:        jsii.Bool(true),
		MinimumTLSVersion: jsii.Number(archiveTLSMin),
		ObjectOwnership:   awss3.ObjectOwnership_BUCKET_OWNER_ENFORCED,
		Versioned:         jsii.Bool(true),
		RemovalPolicy:     chosen.RemovalPolicy,
		LifecycleRules: &[]*awss3.LifecycleRule{{
			AbortIncompleteMultipartUploadAfter: awscdk.Duration_Days(jsii.Number(archiveUploadDays)),
			Transitions: &[]*awss3.Transition{{
				StorageClass:    awss3.StorageClass_INFREQUENT_ACCESS(),
				TransitionAfter: awscdk.Duration_Days(jsii.Number(archiveHotDays)),
			}},
		}},
	})
}
