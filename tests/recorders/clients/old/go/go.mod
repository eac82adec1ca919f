module oldclients

go 1.21

require github.com/Shopify/sarama v1.20.1
