package main

import "testing"

// The archive has the only copy of what has left the table.
func TestTheArchiveIsGuardedAndKept(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		mustBe(t, "versions", s.mustResource(t, "AWS::S3::Bucket", "ArchiveBucket").at("VersioningConfiguration", "Status"), "Enabled")
	})
}

// Both buckets have what nobody outside may read: sales, and what is wrong with them.
func TestNoBucketIsOpen(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		buckets := s.mustResources(t, "AWS::S3::Bucket")
		if len(buckets) != 2 {
			t.Errorf("%d buckets, want two", len(buckets))
		}
		for _, bucket := range buckets {
			mustBe(t, "name", bucket.at("BucketName"), nil)
			mustBe(t, "public access", bucket.at("PublicAccessBlockConfiguration"), map[string]any{
				"BlockPublicAcls": true, "BlockPublicPolicy": true, "IgnorePublicAcls": true, "RestrictPublicBuckets": true,
			})
			mustBe(t, "encryption", bucket.at("BucketEncryption", "ServerSideEncryptionConfiguration", 0,
				"ServerSideEncryptionByDefault", "SSEAlgorithm"), "AES256")
			mustBe(t, "ownership", bucket.at("OwnershipControls", "Rules", 0, "ObjectOwnership"), "BucketOwnerEnforced")
			mustBe(t, "acl", bucket.at("AccessControl"), nil)
		}
	})
}

// What the parts of an audit saw goes after days, and a report after months; nothing else
// does, and nothing of it is kept twice.
func TestTheAuditForgets(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		bucket := s.mustResource(t, "AWS::S3::Bucket", "AuditBucket")
		mustBe(t, "versions", bucket.at("VersioningConfiguration"), nil)
		mustBe(t, "rules", bucket.at("LifecycleConfiguration", "Rules"), []any{
			map[string]any{"Status": "Enabled", "Prefix": "runs/", "ExpirationInDays": 4},
			map[string]any{"Status": "Enabled", "Prefix": "reports/", "ExpirationInDays": 190},
			map[string]any{"Status": "Enabled", "AbortIncompleteMultipartUpload": map[string]any{"DaysAfterInitiation": 7}},
		})
	})
}

// Nothing that the lifecycle does may lose an object, or a version of one.
func TestTheLifecycleLosesNothing(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		rules := listed(s.mustResource(t, "AWS::S3::Bucket", "ArchiveBucket").at("LifecycleConfiguration", "Rules"))
		if len(rules) != 1 {
			t.Fatalf("%d rules, want one", len(rules))
		}
		mustBe(t, "rule", rules[0], map[string]any{
			"Status":                         "Enabled",
			"AbortIncompleteMultipartUpload": map[string]any{"DaysAfterInitiation": 7},
			"Transitions":                    []any{map[string]any{"StorageClass": "STANDARD_IA", "TransitionInDays": 30}},
		})
	})
}

func TestBucketsAreReachedOverTLSOnly(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		plain, old := map[string]bool{}, map[string]bool{}
		for _, policy := range s.mustResources(t, "AWS::S3::BucketPolicy") {
			bucket := readable(policy.at("Bucket"))
			for _, statement := range listed(policy.at("PolicyDocument", "Statement")) {
				mustBe(t, "effect", at(statement, "Effect"), "Deny")
				mustBe(t, "action", at(statement, "Action"), "s3:*")
				plain[bucket] = plain[bucket] || at(statement, "Condition", "Bool", "aws:SecureTransport") == "false"
				old[bucket] = old[bucket] || at(statement, "Condition", "NumericLessThan", "s3:TlsVersion") == 1.2
			}
		}
		for _, bucket := range []string{"ArchiveBucket", "AuditBucket"} {
			if !plain[bucket] || !old[bucket] {
				t.Errorf("%s: plain connections are refused: %t; old TLS is: %t", bucket, plain[bucket], old[bucket])
			}
		}
	})
}
