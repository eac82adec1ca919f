"""What a broker keeps in its log directory, read and written."""
