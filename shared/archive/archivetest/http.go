package archivetest

import (
	"encoding/xml"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// errorAnswer and listAnswer are S3's answers:
// https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html and
// https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html
type errorAnswer struct {
	XMLName xml.Name `xml:"Error"`
	Code    string
}

type listAnswer struct {
	XMLName     xml.Name `xml:"ListBucketResult"`
	IsTruncated bool
	Contents    []listedObject
}

type listedObject struct {
	Key  string
	Size int64
}

// ServeHTTP speaks the three calls of S3 over HTTP, with the bucket in the path, for whoever
// builds its client itself. It answers no call with more than a page of names.
func (b *Bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case r.Method == http.MethodPut && key != "":
		_, err := b.PutObject(r.Context(), &s3.PutObjectInput{
			Bucket: aws.String(name), Key: aws.String(key), Body: r.Body, ContentLength: aws.Int64(r.ContentLength),
			IfNoneMatch: header(r, "If-None-Match"), ChecksumSHA256: header(r, "X-Amz-Checksum-Sha256"),
		})
		if err != nil {
			refuse(w, http.StatusPreconditionFailed, "PreconditionFailed")
		}
	case r.Method == http.MethodGet && key != "":
		out, err := b.GetObject(r.Context(), &s3.GetObjectInput{Bucket: aws.String(name), Key: aws.String(key)})
		if err != nil {
			refuse(w, http.StatusNotFound, "NoSuchKey")
			return
		}
		// The client sees a body that is cut.
		_, _ = io.Copy(w, out.Body)
	case r.Method == http.MethodGet:
		query := r.URL.Query()
		out, err := b.ListObjectsV2(r.Context(), &s3.ListObjectsV2Input{
			Bucket: aws.String(name), Prefix: aws.String(query.Get("prefix")), StartAfter: aws.String(query.Get("start-after")), MaxKeys: aws.Int32(keysMax),
		})
		if err != nil {
			refuse(w, http.StatusNotFound, "NoSuchBucket")
			return
		}
		answer := listAnswer{IsTruncated: aws.ToBool(out.IsTruncated)}
		for _, one := range out.Contents {
			answer.Contents = append(answer.Contents, listedObject{aws.ToString(one.Key), aws.ToInt64(one.Size)})
		}
		_ = xml.NewEncoder(w).Encode(answer)
	default:
		refuse(w, http.StatusMethodNotAllowed, "MethodNotAllowed")
	}
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	_ = xml.NewEncoder(w).Encode(errorAnswer{Code: code})
}

func header(r *http.Request, name string) *string {
	if value := r.Header.Get(name); value != "" {
		return aws.String(value)
	}
	return nil
}
