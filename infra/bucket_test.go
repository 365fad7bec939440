package main

import "testing"

// The archive has the only copy of what has left the table.
func TestTheArchiveIsGuardedAndKept(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		if made := s.mustResources(t, "AWS::S3::Bucket"); len(made) != 1 {
			t.Errorf("%d buckets, want one", len(made))
		}
		bucket := s.mustResource(t, "AWS::S3::Bucket", "ArchiveBucket")
		mustBe(t, "name", bucket.at("BucketName"), nil)
		mustBe(t, "public access", bucket.at("PublicAccessBlockConfiguration"), map[string]any{
			"BlockPublicAcls": true, "BlockPublicPolicy": true, "IgnorePublicAcls": true, "RestrictPublicBuckets": true,
		})
		mustBe(t, "encryption", bucket.at("BucketEncryption", "ServerSideEncryptionConfiguration", 0,
			"ServerSideEncryptionByDefault", "SSEAlgorithm"), "AES256")
		mustBe(t, "versions", bucket.at("VersioningConfiguration", "Status"), "Enabled")
		mustBe(t, "ownership", bucket.at("OwnershipControls", "Rules", 0, "ObjectOwnership"), "BucketOwnerEnforced")
		mustBe(t, "acl", bucket.at("AccessControl"), nil)
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

func TestTheArchiveIsReachedOverTLSOnly(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		var plain, old bool
		for _, policy := range s.mustResources(t, "AWS::S3::BucketPolicy") {
			mustBeRef(t, "bucket", policy.at("Bucket"), "ArchiveBucket")
			for _, statement := range listed(policy.at("PolicyDocument", "Statement")) {
				mustBe(t, "effect", at(statement, "Effect"), "Deny")
				mustBe(t, "action", at(statement, "Action"), "s3:*")
				plain = plain || at(statement, "Condition", "Bool", "aws:SecureTransport") == "false"
				old = old || at(statement, "Condition", "NumericLessThan", "s3:TlsVersion") == 1.2
			}
		}
		if !plain || !old {
			t.Errorf("plain connections are refused: %t; old TLS is: %t", plain, old)
		}
	})
}
