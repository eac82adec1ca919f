module gcs

go 1.23
