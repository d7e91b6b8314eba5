"""What a tool is: its port, its arguments, and its calls as models write them."""
