/** An amount of cents, as people read it. */
export function shown(cents: number): string {
  return `${(cents / 100).toFixed(2)} EUR`;
}
