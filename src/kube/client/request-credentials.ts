/** The credentials as a transport uses them. */

/** TLS settings of a connection; a new object whenever a file behind them changed. */
export interface TlsSettings {
  ca?: string | Buffer;
  cert?: string | Buffer;
  key?: string | Buffer;
  servername?: string;
  rejectUnauthorized?: boolean;
}

/** Headers of a request; a header with a list is sent several times. */
export type RequestHeaders = Record<string, string | string[]>;

/** The address of the API server, and the credentials of each request to it. */
export interface RequestCredentials {
  readonly serverUrl: URL;
  readonly proxyUrl: string | undefined;
  /** Compressed responses must not be requested. */
  readonly disableCompression: boolean;
  /** Rises with each renewal: shows whether a failed request used the newest credentials. */
  readonly generation: number;
  /** The authentication headers; a promise while they are read. */
  headers(): RequestHeaders | Promise<RequestHeaders>;
  /** The TLS settings; compare by identity: another object means that connections should be recreated. */
  tls(): TlsSettings;
  /** A connection failed, perhaps for its certificates: compare the files before the next one. Cheap, may be called often. */
  recheckTls(): void;
  /** The server returned 401 to a request made with `generation`: read everything again before the next one. */
  renew(generation: number): void;
}
