struct Detector {
    void run(laxity::Values<const uint8_t>) {}
};

int main()
{
    Detector detector;
// own-code.md 2
}
