import assert from "node:assert/strict";
import { test } from "node:test";
import { total } from "./index.js";

test("prices add up", () => assert.equal(total([100, 250]), "3.50 EUR"));
test("an empty cart costs nothing", () => assert.equal(total([]), "0.00 EUR"));
