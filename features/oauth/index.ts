/** Public face of the oauth pack. */
export { cancelLogin, FlowSnapshot, logout, type Region, readLogin, readRegion, readUsage, readUserInfo, startLogin } from './contract.ts'
