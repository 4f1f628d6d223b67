/** Public face of the gui-store pack. */
export { clearItems, getItem, readLength, removeItem, setItem } from './contract.ts'
