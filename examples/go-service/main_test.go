package main

import (
	"net/http/httptest"
	"testing"
)

func TestHello(t *testing.T) {
	for url, want := range map[string]string{
		"/":         "Hello, world!\n",
		"/?name=Go": "Hello, Go!\n",
	} {
		answer := httptest.NewRecorder()
		hello(answer, httptest.NewRequest("GET", url, nil))
		if got := answer.Body.String(); got != want {
			t.Errorf("%s: %q, not %q", url, got, want)
		}
	}
}
