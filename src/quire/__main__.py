from quire.views.thin import main

if __name__ == "__main__":
    main()
