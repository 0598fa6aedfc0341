"""Run the command line as ``python -m thoughtline``."""

from thoughtline.cli import main

if __name__ == "__main__":
    main()
