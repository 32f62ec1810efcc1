// Original file: proto/csi.proto


export interface ControllerListVolumeHealthRequest {
  'max_entries'?: (number);
  'starting_token'?: (string);
  'secrets'?: ({[key: string]: string});
}

export interface ControllerListVolumeHealthRequest__Output {
  'max_entries'?: (number);
  'starting_token'?: (string);
  'secrets'?: ({[key: string]: string});
}
