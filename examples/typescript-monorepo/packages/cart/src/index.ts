import { shown } from "@shop/money";

/** What all of it costs, as people read it. */
export function total(prices: number[]): string {
  return shown(prices.reduce((sum, price) => sum + price, 0));
}
