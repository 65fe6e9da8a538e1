"""The tests of the shop."""

import unittest

from shop import total


class Total(unittest.TestCase):
    def test_prices_add_up(self):
        self.assertEqual(total([3, 4]), 7)

    def test_an_empty_basket_costs_nothing(self):
        self.assertEqual(total([]), 0)


if __name__ == "__main__":
    unittest.main()
