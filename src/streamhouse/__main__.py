"""`python -m streamhouse` is the same as `streamhouse`."""

from streamhouse.cli.main import main

if __name__ == "__main__":
    main()
