// A library that loads and has none of a driver's functions.
namespace inferno {
int nothing = 0;
}
