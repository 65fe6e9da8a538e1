import assert from "node:assert/strict";
import { test } from "node:test";
import { shown } from "./index.js";

test("cents are two digits", () => assert.equal(shown(1205), "12.05 EUR"));
